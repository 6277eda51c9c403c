#include "store/xml_text.h"

#include <algorithm>
#include <sstream>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

namespace chasqui::store {
namespace {

using boost::property_tree::ptree;

// Behind the '>' of the tag whose inside begins here; nothing where it does not end, or a quote stands where no value
// begins: then this and the parser could disagree about what is a tag.
std::optional<std::size_t> end_of_tag(std::string_view text, std::size_t from) {
  char before = ' ';  // the last that is no blank
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '>') return i + 1;
    if (c == '<') return std::nullopt;
    if (c == '"' || c == '\'') {
      if (before != '=') return std::nullopt;
      i = text.find(c, i + 1);
      if (i == std::string_view::npos) return std::nullopt;
    }
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') before = c;
  }
  return std::nullopt;
}

// The parser calls itself for each level, so this is asked first.
bool is_shallow(std::string_view text) {
  if (text.find('\0') != std::string_view::npos || text.find("<!") != std::string_view::npos) return false;
  std::size_t depth = 0;
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    if (text.substr(at).starts_with("<?")) {
      at = text.find("?>", at);
      continue;
    }
    const bool closes = text.substr(at).starts_with("</");
    const auto end = end_of_tag(text, at + 1);
    if (!end || (closes && depth == 0)) return false;
    if (closes) {
      --depth;
    } else if (text[*end - 2] != '/' && ++depth > kXmlDepthMax) {
      return false;
    }
    at = *end;
  }
  return depth == 0;
}

XmlElement element_of(const std::string& name, const ptree& tree) {
  XmlElement out{name.substr(name.find(':') + 1), tree.data(), {}};
  for (const auto& [child, below] : tree) {
    if (!child.starts_with('<')) out.children.push_back(element_of(child, below));  // "<xmlattr>"
  }
  return out;
}

}  // namespace

const XmlElement* XmlElement::child(std::string_view wanted) const {
  const auto found = std::ranges::find(children, wanted, &XmlElement::name);
  return found == children.end() ? nullptr : &*found;
}

std::string_view XmlElement::text_of(std::string_view wanted) const {
  const XmlElement* const found = child(wanted);
  return found == nullptr ? std::string_view() : std::string_view(found->text);
}

std::optional<XmlElement> read_xml(std::string_view text) {
  if (text.size() > kXmlMax || !is_shallow(text)) return std::nullopt;
  try {
    ptree tree;
    std::istringstream stream{std::string(text)};
    boost::property_tree::read_xml(stream, tree, boost::property_tree::xml_parser::no_comments);
    if (tree.size() != 1) return std::nullopt;
    return element_of(tree.front().first, tree.front().second);
  } catch (const boost::property_tree::ptree_error&) {
    return std::nullopt;
  }
}

}  // namespace chasqui::store
