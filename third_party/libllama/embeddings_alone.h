// Included by the copy of llama-graph.cpp (embeddings_alone.cmake): takes out of a graph what computes logits alone, from
// the embeddings on. Nothing of the graph is allocated yet.
#pragma once

#include <unordered_set>
#include <vector>

#include "ggml.h"

// The nodes from `logits` down to what reads `embeddings`, each of which reads nothing else that is computed; empty
// where it is not so, and the logits have to stay.
static std::unordered_set<const ggml_tensor*> chasqui_nodes_of_logits(const ggml_tensor* logits,
                                                                      const ggml_tensor* embeddings) {
  std::unordered_set<const ggml_tensor*> nodes;
  for (const ggml_tensor* node = logits; node != embeddings;) {
    const ggml_tensor* computed = nullptr;
    for (const ggml_tensor* source : node->src) {
      if (source == nullptr || source->op == GGML_OP_NONE || source == computed) continue;
      if (computed != nullptr) return {};
      computed = source;
    }
    if (computed == nullptr) return {};
    nodes.insert(node);
    node = computed;
  }
  return nodes;
}

// Whether it did.
static bool chasqui_drop_logits(ggml_cgraph* graph, const ggml_tensor* logits, const ggml_tensor* embeddings) {
  const auto dropped = chasqui_nodes_of_logits(logits, embeddings);
  if (dropped.empty()) return false;
  std::vector<ggml_tensor*> kept;
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    ggml_tensor* node = ggml_graph_node(graph, i);
    if (dropped.count(node) != 0) continue;
    for (const ggml_tensor* source : node->src) {
      if (source != nullptr && dropped.count(source) != 0) return false;  // something else reads logits
    }
    kept.push_back(node);
  }
  ggml_graph_clear(graph);
  for (ggml_tensor* node : kept) ggml_build_forward_expand(graph, node);
  return true;
}
