// RowKernels for machines with AVX2; CMakeLists.txt has the options that it is compiled with.
#ifdef __x86_64__
#include "model/row_kernels_code.h"

namespace chasqui {

extern const RowKernels kRowKernelsAvx2;
const RowKernels kRowKernelsAvx2{
    "avx2", [] { return __builtin_cpu_supports("avx2") != 0; }, maxima, mask, weigh, gather, surprise, cap, weights};

}  // namespace chasqui
#endif
