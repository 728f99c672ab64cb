#!/bin/sh
# Runs nvcc and keeps what ptxas reports of each kernel (-Xptxas -v) in a file beside the object.
for argument; do
  [ "$last" != -o ] || object=$argument
  last=$argument
done
"$@" 2>"$object.messages"
status=$?
about_kernels='Compiling entry function|Function properties|Used [0-9]+ registers|bytes (stack frame|gmem)|Compile time'
grep -E "$about_kernels" "$object.messages" >"$object.ptxas"
grep -vE "$about_kernels" "$object.messages" >&2
rm "$object.messages"
exit $status
