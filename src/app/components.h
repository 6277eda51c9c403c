// What is inside the binary beside Chasqui's own code, with licences: one table, from which `chasqui licenses`, the
// copyright file of packages and the SBOM are made. components_test compares it with what the linker gets, with the
// packages of the page and with docs/dependencies.md. Constant; any thread.
#pragma once

#include <span>
#include <string_view>

namespace chasqui {

// How a component gets to the machine that runs the binary.
enum class Held {
  own,       // Chasqui
  compiled,  // its headers or sources are compiled in
  linked,    // from a library; its own file where the build links it as a shared one
  page,      // in the scripts of the page
  loaded,    // not part of the package: found on the machine when it is needed
};

struct Component {
  std::string_view name;
  std::string_view version;  // "": the build could not tell
  std::string_view license;  // an SPDX expression
  std::string_view purpose;
  std::string_view supplier;  // as SPDX has it, "Organization: …" or "Person: …"
  std::string_view url;
  std::string_view purl;      // its kind and name as a package URL, without the version; "": none
  std::string_view found_as;  // its libraries, packages and sources, as the build and the documentation name them
  Held held = Held::compiled;
  std::string_view text;
};

// Chasqui is the first one.
std::span<const Component> components();

}  // namespace chasqui
