# ggml's fast kernel for flash attention works on tiles of 64 rows of one head, and batches of fewer rows get a slow one:
# those are decode steps and the chunks that streams can wait for. For each tile it converts the keys and values of all
# cells, though all heads of a group have the same ones. flash_tiles.h has another kernel, with tiles of rows of all heads
# of a group, also for a single row. `ops_name` and `planning_name` name the texts of ops.cpp and ggml-cpu.c, which are left
# alone if they do not fit. Comes before kv_chunks.cmake, whose replacements are around these.
function(chasqui_flash_tiles ops_name planning_name)
  set(kernel "ggml_compute_forward_flash_attn_ext_tiled(")
  set(caller "static void ggml_compute_forward_flash_attn_ext_f16(")
  set(fits TRUE)
  set(text "${${ops_name}}")
  set(sizes "${${planning_name}}")
  replace_once(text fits "static void ${kernel}" "[[maybe_unused]] static void ${kernel}")
  replace_once(text fits "${caller}" "#include \"flash_tiles.h\"\n${caller}")
  replace_once(text fits "        static constexpr int64_t Q_TILE_SZ  = ggml_fa_tile_config::Q;\n" "")
  replace_once(text fits "k->type == v->type &&
                                neq1 >= Q_TILE_SZ);" "k->type == v->type);")
  replace_once(text fits "                ${kernel}params, dst, ir0" "                chasqui_flash_attn_tiles(params, dst, ir0")
  replace_once(text fits "            for (int64_t q_head = 0; q_head < neq2; q_head++) {
                ggml_compute_forward_flash_attn_ext_f16_one_chunk(
                    params, dst, q_head, q_head + 1, ic_start, ic_end,
                    chunk_partials, partial_stride);
            }
" "            chasqui_flash_attn_part(params, dst, ic_start, ic_end, chunk_partials, partial_stride,
                                    partials_base + neq2 * partial_stride);
")
  replace_once(sizes fits "cur += MAX(prefill, decode);" "cur += prefill + decode + CACHE_LINE_SIZE*n_tasks;")
  if(fits)
    set(${ops_name} "${text}" PARENT_SCOPE)
    set(${planning_name} "${sizes}" PARENT_SCOPE)
  else()
    message(${misfit} "The flash attention of this llama.cpp is slow for small chunks: flash_tiles.cmake does not fit it.")
  endif()
endfunction()
