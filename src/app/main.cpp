// chasqui: reads the command line and runs what it asks for.
#include "app/bench_command.h"
#include "app/config.h"
#include "app/metrics_document.h"
#include "app/serve.h"
#include "app/simulate_command.h"

int main(int argc, char** argv) {
  const chasqui::CommandLine line = chasqui::read_command_line(argc, argv);
  if (line.bench) return chasqui::run_bench(*line.bench);
  if (line.simulate) return chasqui::simulate(*line.simulate);
  if (line.metrics) return chasqui::print_metrics_document();
  return line.serve ? chasqui::serve(*line.serve) : line.exit_code;
}
