// The demo model inside the binary: the bytes of chasqui-demo.gguf, see embed.S. For targets that link
// chasqui_demo_model. Constant; any thread.
#pragma once

#include <cstddef>
#include <span>

// NOLINTBEGIN(readability-identifier-naming): the assembler's symbols
extern "C" {
extern const std::byte chasqui_demo_model[];
extern const std::byte chasqui_demo_model_end[];
}
// NOLINTEND(readability-identifier-naming)

namespace chasqui {

inline std::span<const std::byte> demo_model() { return {chasqui_demo_model, chasqui_demo_model_end}; }

}  // namespace chasqui
