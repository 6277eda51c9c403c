// chasqui: reads the command line and runs what it asks for.
#include "app/config.h"
#include "app/serve.h"

int main(int argc, char** argv) {
  const chasqui::CommandLine line = chasqui::read_command_line(argc, argv);
  return line.serve ? chasqui::serve(*line.serve) : line.exit_code;
}
