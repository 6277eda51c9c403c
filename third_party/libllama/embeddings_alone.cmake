# A context for embeddings computes the logits of all its rows, too, and keeps room for them, though only its embeddings
# are read: of small models with large vocabularies most of the time, of 128 rows of 152,000 tokens 78 MB twice. Here its
# graph ends with the embeddings. `graph_name` and `context_name` name the texts of llama-graph.cpp and
# llama-context.cpp, which are left alone if they do not fit.
function(chasqui_embeddings_alone graph_name context_name)
  set(fits TRUE)
  set(graph "${${graph_name}}")
  set(context "${${context_name}}")
  replace_once(graph fits "void llm_graph_result::set_outputs(const llm_graph_params & params) {
    if (t_logits != nullptr) {
" "#include \"embeddings_alone.h\"

void llm_graph_result::set_outputs(const llm_graph_params & params) {
    if (params.cparams.embeddings && t_logits != nullptr && t_embd != nullptr &&
        chasqui_drop_logits(gf, t_logits, t_embd)) {
        t_logits = nullptr;
    }
    if (t_logits != nullptr) {
")
  # Where the graph has kept its logits, they are not read, either.
  replace_once(context fits "    bool has_logits     = true;
" "    bool has_logits     = !cparams.embeddings;
")
  if(fits)
    set(${graph_name} "${graph}" PARENT_SCOPE)
    set(${context_name} "${context}" PARENT_SCOPE)
  else()
    message(${misfit} "Embeddings of this llama.cpp compute logits, too: embeddings_alone.cmake does not fit it.")
  endif()
endfunction()
