// Tells models apart, so that KV in a file is never given to another model than the one that made it. Reads a file that
// was just loaded, so mostly from memory; at start, never on the loop. Pure otherwise; any thread.
//
// Of a file: its size, its whole metadata (the vocabulary, the architecture, names, types and shapes of all tensors),
// and of each tensor sixteen blocks of 4 KiB spread over it, or all of it when it is shorter. So another training,
// quantization or merge is seen, whatever its tensors. Not seen is a change inside a tensor that leaves those blocks as
// they were: who patches single weights by hand must empty the folder of snapshots.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/checksum.h"
#include "base/error.h"
#include "model/model.h"
#include "model/model_config.h"

namespace chasqui {

// The first of several split files stands for all.
Result<Checksum> identify_weights(const std::string& path);
// All bytes of a model in memory.
Checksum identify_weights(std::span<const std::byte> gguf);

// What the bytes of a snapshot mean beside the weights: libllama's version, the types of keys and values, the layout,
// in which libllama also counts the streams, and flags that change what is computed: RoPE, metadata, control vectors.
// Reads the files of the latter.
Checksum identify_context(const ModelConfig& config, const ModelShape& shape);

}  // namespace chasqui
