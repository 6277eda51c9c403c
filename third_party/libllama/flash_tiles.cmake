# ggml's fast kernel for flash attention works on tiles of 64 rows of a prompt, and batches of fewer rows get a slow one:
# those are the chunks that streams can wait for. With tiles of 16 rows they are fast, but attention of long batches takes
# half as much time again. So both are compiled, from a copy of ops.cpp in which the kernel is a template, and
# flash_tiles.h calls it: with large tiles while as many rows are left as they pay for.

# Replaces in `text` what is there exactly once, else sets `fits` to FALSE. Both are names of the caller's variables.
macro(replace_once text fits old new)
  string(FIND "${${text}}" "${old}" first)
  string(FIND "${${text}}" "${old}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    set(${fits} FALSE)
  endif()
  string(REPLACE "${old}" "${new}" ${text} "${${text}}")
endmacro()

# Sets `fits` to whether `copy` could be made of `source`, ops.cpp.
function(chasqui_flash_tiles source copy fits)
  set(kernel "ggml_compute_forward_flash_attn_ext_tiled(")
  set(caller "static void ggml_compute_forward_flash_attn_ext_f16(")
  # Threads may be at tiles of different sizes, so the scratch of each begins where it does with large ones.
  set(scratch "ith*(Q_TILE_SZ*DK + 2*Q_TILE_SZ*KV_TILE_SZ + Q_TILE_SZ*DV + ")
  string(REPLACE Q_TILE_SZ GGML_FA_TILE_Q large_scratch "${scratch}")
  set(all_fit TRUE)
  file(READ ${source} text)
  replace_once(text all_fit "static void ${kernel}" "template <int Q_TILE_SZ>\nstatic void ${kernel}")
  replace_once(text all_fit "static constexpr int Q_TILE_SZ  = ggml_fa_tile_config::Q;" "")
  replace_once(text all_fit "${scratch}" "${large_scratch}")
  replace_once(text all_fit "${caller}" "#include \"flash_tiles.h\"\n${caller}")
  replace_once(text all_fit "int64_t Q_TILE_SZ  = ggml_fa_tile_config::Q;" "int64_t Q_TILE_SZ  = chasqui_small_tile;")
  replace_once(text all_fit "                ${kernel}params, dst, ir0" "                chasqui_flash_attn_tiles(params, dst, ir0")
  file(WRITE ${copy} "${text}")
  set(${fits} ${all_fit} PARENT_SCOPE)
endfunction()
