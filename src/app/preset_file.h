// llama-server's file of presets, an INI: a section for each model, with flags without their dashes as keys. Values are
// texts, as if they had been typed. Pure; at start only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui {

struct PresetItem {
  std::string key, value;
  int line = 0;  // of the file, from 1

  bool operator==(const PresetItem&) const = default;
};

struct PresetSection {
  std::string name;
  std::vector<PresetItem> items;  // a key that comes again has replaced the one before
};

struct Preset {
  PresetSection all{"*", {}};           // what holds for every model
  std::vector<PresetSection> sections;  // in the order of the file; no two have the same name
};

// Comments begin with ; or # at the beginning of a line or behind a blank. Errors name the line.
Result<Preset> read_preset(std::string_view text);

}  // namespace chasqui
