# ggml's product of several rows and a matrix of Q4_0 reaches a quarter of what AVX-512 VNNI can do; q4_rows.h has one that
# reaches half, with the same bits. And of rows that are no multiple of four ggml computes the last ones each by itself,
# reading the whole matrix for it; here one to three of them read it once. `x86_name` and `repack_name` name the texts of
# arch/x86/repack.cpp and repack.cpp, which are left alone if they do not fit.
function(chasqui_q4_rows x86_name repack_name)
  set(fits TRUE)
  set(x86 "${${x86_name}}")
  set(repack "${${repack_name}}")
  set(caller "void ggml_gemm_q4_0_8x8_q8_0(")
  set(call "        gemm_q4_b32_8x8_q8_0_lut_avx<block_q4_0x8>(n, s, bs, vx, vy, nr, nc, signextendlut);
")
  replace_once(x86 fits "${caller}" "#include \"q4_rows.h\"\n${caller}")
  replace_once(x86 fits "${call}" "        const int done = chasqui_gemm_q4_0(n, s, bs, vx, vy, nr, nc);
        if (done == nc) return;
        const auto * rest = (const block_q4_0x8 *) vx + (int64_t) (done / 8) * (n / QK8_0);
        gemm_q4_b32_8x8_q8_0_lut_avx<block_q4_0x8>(n, s + done, bs, rest, vy, nr, nc - done, signextendlut);
")
  set(tensors "namespace ggml::cpu::repack {
// repack
")
  replace_once(repack fits "${tensors}" "bool chasqui_few_q4_0(int n, float * s, size_t bs, const void * vx, const char * rows, size_t row_bytes, int nr, int nc);

${tensors}")
  replace_once(repack fits "        for (int iter = nrows - (nrows % 4); iter < nrows; iter++) {
            gemv<BLOC_TYPE, INTER_SIZE, NB_COLS, PARAM_TYPE>(ne00, (float *) (dst_ptr + (iter * nb1)) + src0_start,
                                                             ne01, src0_ptr + src0_start * nb01,
                                                             src1_ptr + (src1_col_stride * iter), 1 /* nrows */, ncols);
" "        const int64_t single = nrows - (nrows % 4);
        bool done = false;
        if constexpr (std::is_same_v<BLOC_TYPE, block_q4_0> && INTER_SIZE == 8 && NB_COLS == 8) {
            if (nrows > single) {
                done = chasqui_few_q4_0(ne00, (float *) (dst_ptr + single * nb1) + src0_start, nb1 / nb0,
                                        src0_ptr + src0_start * nb01, src1_ptr + src1_col_stride * single,
                                        src1_col_stride, nrows - single, ncols);
            }
        }
        for (int64_t iter = single; iter < nrows && !done; iter++) {
            gemv<BLOC_TYPE, INTER_SIZE, NB_COLS, PARAM_TYPE>(ne00, (float *) (dst_ptr + (iter * nb1)) + src0_start,
                                                             ne01, src0_ptr + src0_start * nb01,
                                                             src1_ptr + (src1_col_stride * iter), 1 /* nrows */, ncols);
")
  if(fits)
    set(${x86_name} "${x86}" PARENT_SCOPE)
    set(${repack_name} "${repack}" PARENT_SCOPE)
  else()
    message(${misfit} "Rows of Q4_0 are computed slowly by this llama.cpp: q4_rows.cmake does not fit it.")
  endif()
endfunction()
