# Attention of a single row adds up its cells in as many parts as there are threads, so that the last digits of logits
# depend on how many threads a step gets, which follows measured times. With parts of a fixed size they do not: what a
# step says is a function of its rows (docs/repeatable_answers.md). The source stays as it was fetched: copies of two
# files with these lines changed are compiled in its place.
set(kv_chunk 128)
set(fits TRUE)

function(change text from to)
  string(FIND "${${text}}" "${from}" at)
  if(at EQUAL -1)
    set(fits FALSE PARENT_SCOPE)
  endif()
  string(REPLACE "${from}" "${to}" changed "${${text}}")
  set(${text} "${changed}" PARENT_SCOPE)
endfunction()

file(READ ${ggml_cpu}/ops.cpp ops)
file(READ ${ggml_cpu}/ggml-cpu.c planning)
change(ops "        const int64_t chunk_size = (nek1 + nth - 1) / nth;
" "        const int64_t chunk_size = ${kv_chunk};
        const int64_t n_chunks   = (nek1 + chunk_size - 1) / chunk_size;
")
change(ops "        const int64_t ic_start = ith * chunk_size;
" "        for (int64_t chunk = ith; chunk < n_chunks; chunk += nth) {
        const int64_t ic_start = chunk * chunk_size;
")
change(ops "        const int64_t partial_stride = nth * partial_size;
        float *       chunk_partials = partials_base + ith * partial_size;
" "        const int64_t partial_stride = n_chunks * partial_size;
        float *       chunk_partials = partials_base + chunk * partial_size;
")
change(ops "
        ggml_barrier(params->threadpool);
        ggml_flash_attn_ext_reduce_partials(params, dst, nth, chunk_size);
" "        }

        ggml_barrier(params->threadpool);
        ggml_flash_attn_ext_reduce_partials(params, dst, n_chunks, chunk_size);
")
change(planning "                        size_t n_chunks = n_tasks;
" "                        size_t n_chunks = (node->src[1]->ne[1] + ${kv_chunk} - 1) / ${kv_chunk};
")

set(ops_source ${ggml_cpu}/ops.cpp)
set(planning_source ${ggml_cpu}/ggml-cpu.c)
if(fits)
  set(ops_source ${CMAKE_CURRENT_BINARY_DIR}/kv_chunks/ops.cpp)
  set(planning_source ${CMAKE_CURRENT_BINARY_DIR}/kv_chunks/ggml-cpu.c)
  file(WRITE ${ops_source} "${ops}")
  file(WRITE ${planning_source} "${planning}")
  get_target_property(sources ggml-cpu SOURCES)
  list(FILTER sources EXCLUDE REGEX "(^|/)ggml-cpu/(ops\\.cpp|ggml-cpu\\.c)$")
  set_target_properties(ggml-cpu PROPERTIES SOURCES "${sources};${ops_source};${planning_source}")
else()
  message(WARNING "Answers of this llama.cpp depend on the number of threads: kv_chunks.cmake does not fit it.")
endif()
