# ggml's RPC backend lets a server compute its last graph once more where the graph is the same, and remembers for each
# device which one that was. It remembers wrong where several threads compute with a device, as workers, embeddings and
# several models do: between the look and the request another thread's graph may have come, and a server forgets its
# graphs with each buffer that is freed, which ends the connection at the next "once more". Here the look and the request
# are one, and a freed buffer counts as another graph. `name` names the text of ggml-rpc.cpp, which is left alone if it
# does not fit.
function(chasqui_rpc_graphs name)
  set(fits TRUE)
  set(text "${${name}}")
  replace_once(text fits "static void ggml_backend_rpc_buffer_free_buffer(ggml_backend_buffer_t buffer) {
" "static std::mutex rpc_graphs_mutex;
static uint64_t   rpc_graphs_freed = 0;

static void ggml_backend_rpc_buffer_free_buffer(ggml_backend_buffer_t buffer) {
    std::lock_guard<std::mutex> graphs(rpc_graphs_mutex);
    rpc_graphs_freed += uint64_t{1} << 40;
")
  replace_once(text fits "    bool reuse = cgraph->uid != 0 && rpc_dev_ctx->last_graph_uid == cgraph->uid;
" "    std::lock_guard<std::mutex> graphs(rpc_graphs_mutex);
    const uint64_t graph_uid = cgraph->uid + rpc_graphs_freed;
    bool reuse = cgraph->uid != 0 && rpc_dev_ctx->last_graph_uid == graph_uid;
")
  replace_once(text fits "        rpc_dev_ctx->last_graph_uid = cgraph->uid;
" "        rpc_dev_ctx->last_graph_uid = graph_uid;
")
  if(fits)
    set(${name} "${text}" PARENT_SCOPE)
  else()
    message(${misfit} "Threads that share an RPC server may get each other's results: rpc_graphs.cmake does not fit.")
  endif()
endfunction()
