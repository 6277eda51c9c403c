#include "api/schema/schema_formats.h"

#include <algorithm>

#include "api/schema/schema_pattern.h"

namespace chasqui {
namespace {

#define CHASQUI_CLOCK "(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9]))"
#define CHASQUI_PATH "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
#define CHASQUI_HOST "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?){0,4}"
#define CHASQUI_HEX "[0-9a-f]{1,4}"
#define CHASQUI_HOURS "([0-9]{1,3}H([0-9]{1,3}M)?([0-9]{1,3}S)?|[0-9]{1,3}M([0-9]{1,3}S)?|[0-9]{1,3}S)"

struct Format {
  std::string_view name;
  std::string_view expression;
};

constexpr Format kFormats[] = {
    {"time", "^" CHASQUI_CLOCK "$"},
    {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"},
    {"hostname", "^" CHASQUI_HOST "$"},
    {"ipv6", "^((" CHASQUI_HEX ":){7}" CHASQUI_HEX "|(" CHASQUI_HEX ":){1,7}:|(" CHASQUI_HEX ":){1,6}:" CHASQUI_HEX
             "|(" CHASQUI_HEX ":){1,5}(:" CHASQUI_HEX "){1,2}|(" CHASQUI_HEX ":){1,4}(:" CHASQUI_HEX
             "){1,3}|::" CHASQUI_HEX "|::)$"},
    {"uri", "^[a-z][a-z0-9+.-]{0,15}://" CHASQUI_HOST "(:[0-9]{1,5})?(/" CHASQUI_PATH "*)*([?](" CHASQUI_PATH
            "|[/?])*)?(#(" CHASQUI_PATH "|[/?])*)?$"},
    {"uri-reference", "^(/" CHASQUI_PATH "*)+([?](" CHASQUI_PATH "|[/?])*)?$"},
    {"json-pointer", "^(/([^/~]|~0|~1)*)*$"},
    {"duration",
     "^P([0-9]{1,3}W|([0-9]{1,3}Y([0-9]{1,3}M)?([0-9]{1,3}D)?|[0-9]{1,3}M([0-9]{1,3}D)?|[0-9]{1,3}D)(T" CHASQUI_HOURS
     ")?|T" CHASQUI_HOURS ")$"},
    {"byte", "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
    {"password", ""},
    {"binary", ""},
};

}  // namespace

std::optional<std::string_view> format_expression(std::string_view format) {
  const std::string_view before = pattern_of_format(format);
  if (!before.empty()) return before;
  const auto known = std::ranges::find(kFormats, format, &Format::name);
  if (known == std::end(kFormats)) return std::nullopt;
  return known->expression;
}

}  // namespace chasqui
