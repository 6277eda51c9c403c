# Before libllama computes a batch it tries where the cells of all its parts go, and puts back what it tried. What it puts
# back is where each stream's next cell is looked for, but it takes that of another stream: the place of the stream in
# its part counts, not its number. A decode that is cut between two parts leaves it so. A slot that was empty then begins
# in the middle: its attention has more cells to go through, and adds up in another order (docs/repeatable_answers.md).
# `name` names the text of llama-kv-cache.cpp, which is left alone if it does not fit.
function(chasqui_kv_heads name)
  set(fits TRUE)
  set(text "${${name}}")
  replace_once(text fits "            head = it->v_heads_old[s];
" "            head = it->v_heads_old[sinfo.strm[s]];
")
  if(fits)
    set(${name} "${text}" PARENT_SCOPE)
  else()
    message(${misfit} "A decode that is cut moves cells of slots in this llama.cpp: kv_heads.cmake does not fit it.")
  endif()
endfunction()
