// RowKernels for machines with AVX-512; CMakeLists.txt has the options that it is compiled with.
#ifdef __x86_64__
#include "model/row_kernels_code.h"

namespace chasqui {

extern const RowKernels kRowKernelsAvx512;
const RowKernels kRowKernelsAvx512{
    "avx512", [] { return __builtin_cpu_supports("avx512f") != 0; }, maxima, mask, weigh, gather, surprise, cap,
    weights};

}  // namespace chasqui
#endif
