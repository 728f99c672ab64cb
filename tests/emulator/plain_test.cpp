#include "support.hpp"
TEST(A, B) {}
