#include "model/row_kernels.h"

#include "model/row_kernels_code.h"

namespace chasqui {

#ifdef __x86_64__
extern const RowKernels kRowKernelsAvx2;    // row_kernels_avx2.cpp
extern const RowKernels kRowKernelsAvx512;  // row_kernels_avx512.cpp
#endif

namespace {

const RowKernels kPlain{"plain", [] { return true; }, maxima, mask, weigh, gather, surprise, cap, weights};

const RowKernels* const kAll[] = {
    &kPlain,
#ifdef __x86_64__
    &kRowKernelsAvx2,
    &kRowKernelsAvx512,
#endif
};

const RowKernels& best_row_kernels() {
  const RowKernels* best = &kPlain;
  for (const RowKernels* each : kAll) {
    if (each->usable()) best = each;
  }
  return *best;
}

}  // namespace

std::span<const RowKernels* const> all_row_kernels() { return kAll; }

const RowKernels& row_kernels() {
  static const RowKernels& best = best_row_kernels();
  return best;
}

}  // namespace chasqui
