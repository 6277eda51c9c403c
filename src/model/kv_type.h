// The formats that keys and values can have in the KV cache: those that llama-server takes. The one table of their
// names and sizes. Pure; any thread.
#pragma once

#include <span>
#include <string_view>

namespace chasqui {

// Less than f16 costs accuracy; values that are quantized need flash attention. Identities of folders hold the numbers:
// new ones go to the end.
enum class KvType { f16, q8_0, f32, bf16, q4_0, q4_1, iq4_nl, q5_0, q5_1 };

std::span<const KvType> kv_types();

// As llama-server writes it.
std::string_view name(KvType type);
// With its part of what a block of values has in common.
double bytes_per_value(KvType type);
// libllama's number of it.
int ggml_type_of(KvType type);

}  // namespace chasqui
