#include "cuda_runtime.h"  // SPDX-License-Identifier: MIT
