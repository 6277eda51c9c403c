// Whether a model can be loaded, found out in a process of its own: what a broken file makes libllama die of ends that
// process, and the server, which serves others meanwhile, gets an error with the reason. The process is this program
// with the same command line. It loads the model as cheaply as can be (mapped, on no device), makes a small context
// and decodes once. For unforeseen faults, and no protection against a file that wants to do harm. The server's side is
// on the thread that loads, or at start.
#pragma once

#include "app/config.h"
#include "base/error.h"
#include "base/flag.h"

namespace chasqui {

// Blocks for as long as the other process takes, or until `stop` is raised. Errors are told to a person and name the
// file. Where no process is to be had the model counts as good, and the log says so.
Result<void> try_loading(const ServeConfig& model, const Flag& stop);

// This process is one in which a model is tried.
bool is_load_trial();
// Gives up what it has of the server. First of all.
void begin_load_trial();
// The exit code; what came out is written to standard output.
int run_load_trial(const ServeConfig& config);

}  // namespace chasqui
