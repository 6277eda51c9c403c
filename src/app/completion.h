// `chasqui completion SHELL`: a script for the shell, from the commands and flags that there are. Pure.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace chasqui {

// REQUIRES: shell is bash, zsh or fish.
std::string completion_script(const CLI::App& root, const std::string& shell);

}  // namespace chasqui
