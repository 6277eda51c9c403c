# ggml multiplies rows with a matrix of Q8_0 (the output layer of many models of Q4_0) one row and one column at a time,
# and with one of Q5_K or Q6_K by the routine for single rows. For Q4_K it has a kernel for a matrix in another order,
# which takes a copy of the file in memory. byte_rows.h does sixteen columns at once, with AVX2 eight, from the file as
# it is. `sgemm_name` and `repack_name` name the texts of llamafile/sgemm.cpp and repack.cpp, which are left alone if
# they do not fit. Experts' matrices of Q4_K, which come by another way, keep ggml's kernel.
function(chasqui_byte_rows sgemm_name repack_name)
  set(fits TRUE)
  set(sgemm "${${sgemm_name}}")
  set(repack "${${repack_name}}")
  set(caller "bool llamafile_sgemm(const struct ggml_compute_params * params, int64_t m, int64_t n, int64_t k,
                     const void *A, int64_t lda, const void *B, int64_t ldb, void *C,
                     int64_t ldc, int Atype, int Btype, int Ctype) {
")
  set(beginning "    // only enable sgemm for prompt processing
")
  set(choice "    } else if (cur->type == GGML_TYPE_Q4_K) {
")
  replace_once(sgemm fits "${caller}" "#include \"byte_rows.h\"\n${caller}")
  replace_once(sgemm fits "${beginning}" "    if (Ctype == GGML_TYPE_F32 && chasqui_gemm(params, m, n, k, A, lda, B, ldb, C, ldc, Atype, Btype))
        return true;
${beginning}")
  replace_once(repack fits "${choice}" "${choice}#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
        if (cur->ne[2] == 1) return nullptr;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__) && !defined(__AVX512F__)
        if (cur->ne[2] == 1) return nullptr;
#endif
")
  if(fits)
    set(${sgemm_name} "${sgemm}" PARENT_SCOPE)
    set(${repack_name} "${repack}" PARENT_SCOPE)
  else()
    message(${misfit} "Rows of Q8_0 and K formats are computed slowly by this llama.cpp: byte_rows.cmake does not fit it.")
  endif()
endfunction()
