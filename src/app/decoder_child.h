// The other end of app/decoder_process: a process, of this binary, that decodes what clients send and does nothing
// else. It has no files but its socket and no secrets, and can make no files, connections, threads or processes: limits
// of the kernel and a filter of system calls see to it, and end it. What a file makes of a decoder is therefore a lost
// process. One thread.
#pragma once

namespace chasqui {

// The first word of its command line.
inline constexpr const char* kDecoderWord = "media-decoder";

// Whether this process is one.
bool is_media_decoder(int words, char** line);
// The exit code. Standard input is the socket; returns when the server has closed its end.
int run_media_decoder();

// Gives up, for good, all that decoding does not need. False: this kernel has no filter of system calls.
bool confine_decoder();
// Greets, and answers orders, until the other end is closed or says something else. `filtered`: what confine_decoder()
// said.
void answer_decode_orders(int socket, bool filtered);

}  // namespace chasqui
