#include "base/thread_name.h"

#include <pthread.h>

namespace chasqui {

void name_this_thread(const std::string& name) {
#ifdef __linux__
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
#else
  static_cast<void>(name);
#endif
}

}  // namespace chasqui
