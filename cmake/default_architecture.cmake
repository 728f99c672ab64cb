# The GPU that is here, or Hopper where there is none: `native` fails without a device.
execute_process(COMMAND nvidia-smi -L OUTPUT_VARIABLE gpus ERROR_QUIET RESULT_VARIABLE status)
if(status EQUAL 0 AND gpus MATCHES "GPU 0")
  set(CMAKE_CUDA_ARCHITECTURES native)
else()
  set(CMAKE_CUDA_ARCHITECTURES 90)
endif()
