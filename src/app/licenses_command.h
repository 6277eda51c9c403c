// `chasqui licenses`: the licences of everything inside the binary, and its list of parts as an SBOM (SPDX 2.3). From
// the table of app/components. The calling thread.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace chasqui {

struct LicensesConfig {
  bool list = false;  // a table instead of the texts
  bool spdx = false;  // the SBOM instead
};

CLI::App* add_licenses_command(CLI::App& app, LicensesConfig& config);
int print_licenses(const LicensesConfig& config);

std::string licenses_document();
std::string licenses_table();
// `created`: in seconds since 1970.
std::string spdx_document(std::int64_t created);

}  // namespace chasqui
