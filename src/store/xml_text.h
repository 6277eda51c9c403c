// Small XML documents that a store sends, read by Boost's property tree and never trusted: size and depth have limits,
// and a document with declarations, comments or CDATA is refused, since no store that is known sends one. Namespaces
// are left out: names come without their prefix. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui::store {

constexpr std::size_t kXmlMax = std::size_t{32} << 20;
constexpr std::size_t kXmlDepthMax = 16;

struct XmlElement {
  std::string name;
  std::string text;  // directly in it
  std::vector<XmlElement> children;

  // The first of this name, or null.
  const XmlElement* child(std::string_view wanted) const;
  std::string_view text_of(std::string_view wanted) const;
};

// The outermost element; nothing where the text is no such document.
std::optional<XmlElement> read_xml(std::string_view text);

}  // namespace chasqui::store
