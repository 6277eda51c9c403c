#include "app/licenses_command.h"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/components.h"
#include "base/ascii.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/rfc3339.h"
#include "cli/terminal.h"
#include "cli/text_table.h"
#include "net/digest.h"

namespace chasqui {
namespace {

constexpr std::string_view kLicensesHead =
    "Chasqui and what its binary is made of, each part with its licence. `chasqui licenses --list` prints the table\n"
    "alone, `chasqui licenses --spdx` a list of parts for programs (SPDX 2.3).\n\n";

std::string titled(const Component& component) {
  std::string out(component.name);
  if (!component.version.empty()) out += ' ' + std::string(component.version);
  return out;
}

// Letters, digits, dots and dashes, as SPDX has it.
std::string spdx_id(std::string_view name) {
  std::string out = "SPDXRef-Package-";
  for (const char c : name) {
    out += is_ascii_word_or(".", c) ? c : c == '+' ? 'p' : '-';
  }
  return out;
}

// Of `component` to Chasqui.
std::string_view relation(const Component& component) {
  switch (component.held) {
    case Held::own: break;
    case Held::compiled:
    case Held::page: return "CONTAINS";
    case Held::linked:
    case Held::loaded: return "DEPENDS_ON";
  }
  return "";
}

void write_package(JsonWriter& json, const Component& component) {
  json.begin_object();
  json.field("name", component.name);
  json.field("SPDXID", spdx_id(component.name));
  if (!component.version.empty()) json.field("versionInfo", component.version);
  json.field("supplier", component.supplier);
  json.field("downloadLocation", component.url);
  json.field("filesAnalyzed", false);
  json.field("licenseConcluded", component.license);
  json.field("licenseDeclared", component.license);
  json.field("copyrightText", "NOASSERTION");
  json.field("summary", component.purpose);
  if (!component.purl.empty()) {
    std::string locator(component.purl);
    if (!component.version.empty()) locator += '@' + std::string(component.version);
    json.begin_array("externalRefs");
    json.begin_object();
    json.field("referenceCategory", "PACKAGE-MANAGER");
    json.field("referenceType", "purl");
    json.field("referenceLocator", locator);
    json.end_object();
    json.end_array();
  }
  json.end_object();
}

void write_relation(JsonWriter& json, std::string_view from, std::string_view kind, std::string_view to) {
  json.begin_object();
  json.field("spdxElementId", from);
  json.field("relationshipType", kind);
  json.field("relatedSpdxElement", to);
  json.end_object();
}

// The same parts, the same digits.
std::string digits_of_parts() {
  net::Digest digest(net::Digest::Kind::sha256);
  for (const Component& part : components()) digest.add(titled(part) + ' ' + std::string(part.license) + '\n');
  return digest.hex().substr(0, 32);
}

// As builds that are to give the same bytes again say it.
std::int64_t time_of_document() {
  const char* said = std::getenv("SOURCE_DATE_EPOCH");  // NOLINT(concurrency-mt-unsafe): nothing else runs
  std::int64_t seconds = 0;
  const std::string_view text = said == nullptr ? "" : said;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool whole = !text.empty() && error == std::errc() && end == text.data() + text.size() && seconds >= 0;
  return whole ? seconds : RealClock().unix_seconds();
}

}  // namespace

CLI::App* add_licenses_command(CLI::App& app, LicensesConfig& config) {
  CLI::App* licenses = app.add_subcommand("licenses", "Print the licences of everything that is in the binary");
  CLI::Option* list = licenses->add_flag("--list", config.list, "a table of the parts, without the texts");
  licenses->add_flag("--spdx", config.spdx, "the list of parts for programs: an SBOM, SPDX 2.3 in JSON")
      ->excludes(list);
  return licenses;
}

int print_licenses(const LicensesConfig& config) {
  cli::write_out(config.spdx   ? spdx_document(time_of_document())
                 : config.list ? licenses_table()
                               : licenses_document());
  return 0;
}

std::string licenses_table() {
  std::vector<std::vector<std::string>> rows = {{"PART", "VERSION", "LICENCE", "FOR"}};
  for (const Component& component : components()) {
    rows.push_back({std::string(component.name), std::string(component.version), std::string(component.license),
                    std::string(component.purpose)});
  }
  return cli::text_table(std::move(rows));
}

std::string licenses_document() {
  std::string out = std::string(kLicensesHead) + licenses_table();
  for (const Component& component : components()) {
    const std::string title = titled(component) + ": " + std::string(component.license);
    out += "\n\n" + title + '\n' + std::string(title.size(), '-') + '\n';
    if (component.url != "NOASSERTION") out += std::string(component.url) + "\n";
    out += '\n' + std::string(component.text);
    if (!component.text.ends_with('\n')) out += '\n';
  }
  return out;
}

std::string spdx_document(std::int64_t created) {
  const Component& own = components().front();
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("spdxVersion", "SPDX-2.3");
  json.field("dataLicense", "CC0-1.0");
  json.field("SPDXID", "SPDXRef-DOCUMENT");
  json.field("name", "chasqui-" + std::string(own.version));
  json.field("documentNamespace",
             "https://spdx.org/spdxdocs/chasqui-" + std::string(own.version) + '-' + digits_of_parts());
  json.begin_object("creationInfo");
  json.field("created", rfc3339(created));
  json.begin_array("creators");
  json.string("Tool: chasqui-" + std::string(own.version));
  json.end_array();
  json.end_object();
  json.begin_array("documentDescribes");
  json.string(spdx_id(own.name));
  json.end_array();
  json.begin_array("packages");
  for (const Component& component : components()) write_package(json, component);
  json.end_array();
  json.begin_array("relationships");
  write_relation(json, "SPDXRef-DOCUMENT", "DESCRIBES", spdx_id(own.name));
  for (const Component& component : components().subspan(1)) {
    write_relation(json, spdx_id(own.name), relation(component), spdx_id(component.name));
  }
  json.end_array();
  json.end_object();
  return out + '\n';
}

}  // namespace chasqui
