// Projectors with random weights for random-24m and random-mrope: what mtmd encodes pictures and sounds with, small
// enough for tests, or as large as people use.
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
  // Of the encoders.
  std::int64_t own_width = 64;
  std::int64_t inner = 128;
  std::int64_t heads = 4;
  std::int64_t layers = 3;
  std::int64_t side = 112;  // of a picture, in pixels
  bool large = false;       // made by its name only
};

const std::vector<Projector>& projectors();
const Projector* find_projector(const std::string& name);

Written write_projector(const Projector& projector, const std::string& path, std::uint64_t seed);

}  // namespace mkmodel
