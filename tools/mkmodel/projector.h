// Projectors with random weights for random-24m: what mtmd encodes pictures and sounds with, small enough for tests.
// What comes out makes no sense, but follows from the file and is the same with every program that uses libllama.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf_file.h"

namespace mkmodel {

struct Projector {
  std::string name;
  std::string about;
  std::string sees;        // clip's type for pictures; empty: it reads none
  std::string hears;       // … for sounds
  std::int64_t width = 0;  // of the model
};

const std::vector<Projector>& projectors();
const Projector* find_projector(const std::string& name);

Written write_projector(const Projector& projector, const std::string& path, std::uint64_t seed);

}  // namespace mkmodel
