# Before libllama computes a batch it tries where the cells of all its parts go, and puts back what it tried. What it puts
# back is where each stream's next cell is looked for, but it takes that of another stream: the place of the stream in
# its part counts, not its number. A decode that is cut between two parts leaves it so. A slot that was empty then begins
# in the middle: its attention has more cells to go through, and adds up in another order (docs/repeatable_answers.md).
#
# The cells of a sliding window are a ring. Where rows are taken back (a decode that was cut, draft tokens) libllama looks
# on at the first of their cells in the ring, which need not be that of the first row. Then the same rows lie in another
# order the next time. With this they lie where they lay.
#
# `name` names the text of llama-kv-cache.cpp, which is left alone if it does not fit.
function(chasqui_kv_heads name)
  set(fits TRUE)
  set(text "${${name}}")
  replace_once(text fits "            head = it->v_heads_old[s];
" "            head = it->v_heads_old[sinfo.strm[s]];
")
  replace_once(text fits "
        uint32_t new_head = cells.size();

        for (uint32_t i = 0; i < cells.size(); ++i) {
            if (!cells.pos_in(i, p0, p1)) {
                continue;
            }

            if (cells.seq_has(i, seq_id) && cells.seq_rm(i, seq_id)) {
                if (new_head == cells.size()) {
                    new_head = i;
                }
            }
        }

        // If we freed up a slot, set head to it so searching can start there.
        if (new_head != cells.size() && new_head < head) {
            head = new_head;
        }
    } else {
" "
        const bool ring = n_swa > 0 && p0 > 0;

        uint32_t new_head = cells.size();
        llama_pos first   = std::numeric_limits<llama_pos>::max();

        for (uint32_t i = 0; i < cells.size(); ++i) {
            if (!cells.pos_in(i, p0, p1)) {
                continue;
            }

            const llama_pos pos = cells.pos_get(i);

            if (cells.seq_has(i, seq_id) && cells.seq_rm(i, seq_id)) {
                if (ring ? pos < first : new_head == cells.size()) {
                    new_head = i;
                    first    = pos;
                }
            }
        }

        // If we freed up a slot, set head to it so searching can start there.
        if (new_head != cells.size() && (ring || new_head < head)) {
            head = new_head;
        }
    } else {
")
  if(fits)
    set(${name} "${text}" PARENT_SCOPE)
  else()
    message(${misfit} "A decode that is cut moves cells of slots in this llama.cpp: kv_heads.cmake does not fit it.")
  endif()
endfunction()
