# ggml's fast kernel for flash attention works on tiles of 64 rows of a prompt, and batches of fewer rows get a slow one:
# those are the chunks that streams can wait for. With tiles of 16 rows they are fast, but attention of long batches takes
# half as much time again. So both are compiled, with the kernel as a template, and flash_tiles.h calls it: with large
# tiles while as many rows are left as they pay for. `ops_name` names the text of ops.cpp, which is left alone if it does not
# fit.
function(chasqui_flash_tiles ops_name)
  set(kernel "ggml_compute_forward_flash_attn_ext_tiled(")
  set(caller "static void ggml_compute_forward_flash_attn_ext_f16(")
  # Threads may be at tiles of different sizes, so the scratch of each begins where it does with large ones.
  set(scratch "ith*(Q_TILE_SZ*DK + 2*Q_TILE_SZ*KV_TILE_SZ + Q_TILE_SZ*DV + ")
  string(REPLACE Q_TILE_SZ GGML_FA_TILE_Q large_scratch "${scratch}")
  set(fits TRUE)
  set(text "${${ops_name}}")
  replace_once(text fits "static void ${kernel}" "template <int Q_TILE_SZ>\nstatic void ${kernel}")
  replace_once(text fits "static constexpr int Q_TILE_SZ  = ggml_fa_tile_config::Q;" "")
  replace_once(text fits "${scratch}" "${large_scratch}")
  replace_once(text fits "${caller}" "#include \"flash_tiles.h\"\n${caller}")
  replace_once(text fits "int64_t Q_TILE_SZ  = ggml_fa_tile_config::Q;" "int64_t Q_TILE_SZ  = chasqui_small_tile;")
  replace_once(text fits "                ${kernel}params, dst, ir0" "                chasqui_flash_attn_tiles(params, dst, ir0")
  if(fits)
    set(${ops_name} "${text}" PARENT_SCOPE)
  else()
    message(${misfit} "The flash attention of this llama.cpp is slow for small chunks: flash_tiles.cmake does not fit it.")
  endif()
endfunction()
