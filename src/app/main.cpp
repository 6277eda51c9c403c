// chasqui: reads the command line and runs what it asks for.
#include "app/bench_command.h"
#include "app/config.h"
#include "app/load_trial.h"
#include "app/serve.h"
#include "app/simulate_command.h"
#include "app/supervise.h"

int main(int argc, char** argv) {
  if (chasqui::is_load_trial()) chasqui::begin_load_trial();
  const chasqui::CommandLine line = chasqui::read_command_line(argc, argv);
  if (line.bench) return chasqui::run_bench(*line.bench);
  if (line.command) return line.command();
  if (line.simulate) return chasqui::simulate(*line.simulate);
  if (!line.serve) return line.exit_code;
  if (chasqui::is_load_trial()) return chasqui::run_load_trial(*line.serve);
  const bool supervises = line.serve->operation.supervise && !chasqui::is_supervised();
  return supervises ? chasqui::supervise(*line.serve, argv) : chasqui::serve(*line.serve);
}
