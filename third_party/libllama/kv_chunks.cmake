# Attention of a single row adds up its cells in as many parts as there are threads, so that the last digits of logits
# depend on how many threads a step gets, which follows measured times. With parts of a fixed size they do not: what a
# step says is a function of its rows (docs/repeatable_answers.md). `ops_name` and `planning_name` name the texts of ops.cpp and
# ggml-cpu.c, which are left alone if they do not fit.
function(chasqui_kv_chunks ops_name planning_name)
  set(chunk 128)
  set(fits TRUE)
  set(computing "${${ops_name}}")
  set(sizes "${${planning_name}}")
  replace_once(computing fits "        const int64_t chunk_size = (nek1 + nth - 1) / nth;
" "        const int64_t chunk_size = ${chunk};
        const int64_t n_chunks   = (nek1 + chunk_size - 1) / chunk_size;
")
  replace_once(computing fits "        const int64_t ic_start = ith * chunk_size;
" "        for (int64_t chunk = ith; chunk < n_chunks; chunk += nth) {
        const int64_t ic_start = chunk * chunk_size;
")
  replace_once(computing fits "        const int64_t partial_stride = nth * partial_size;
        float *       chunk_partials = partials_base + ith * partial_size;
" "        const int64_t partial_stride = n_chunks * partial_size;
        float *       chunk_partials = partials_base + chunk * partial_size;
")
  replace_once(computing fits "
        ggml_barrier(params->threadpool);
        ggml_flash_attn_ext_reduce_partials(params, dst, nth, chunk_size);
" "        }

        ggml_barrier(params->threadpool);
        ggml_flash_attn_ext_reduce_partials(params, dst, n_chunks, chunk_size);
")
  replace_once(sizes fits "                        size_t n_chunks = n_tasks;
" "                        size_t n_chunks = (node->src[1]->ne[1] + ${chunk} - 1) / ${chunk};
")
  if(fits)
    set(${ops_name} "${computing}" PARENT_SCOPE)
    set(${planning_name} "${sizes}" PARENT_SCOPE)
  else()
    message(${misfit} "Answers of this llama.cpp depend on the number of threads: kv_chunks.cmake does not fit it.")
  endif()
endfunction()
