#include "kernels/failure.h"

#include <exception>
#include <string>

namespace topknot::kernels {
namespace {

// The text must outlive the call that made it; one for each thread, so that none waits.
thread_local std::string last_error;

topknot_status status_of(Code code) {
  switch (code) {
    case Code::kNotFound: return TOPKNOT_NOT_FOUND;
    case Code::kUnsupported: return TOPKNOT_UNSUPPORTED;
    case Code::kResource:
    case Code::kIo: return TOPKNOT_RESOURCE;
    case Code::kInvalidArgument:
    case Code::kCorrupt:
    case Code::kOutOfRange:
    case Code::kCancelled: break;
  }
  return TOPKNOT_INVALID_ARGUMENT;
}

}  // namespace

topknot_status guarded(const std::function<Status()>& call) {
  try {
    const Status done = call();
    if (done) return TOPKNOT_OK;
    last_error = done.error().to_string();
    return status_of(done.error().code);
  } catch (const std::exception& error) {  // memory, of the host
    last_error = error.what();
    return TOPKNOT_RESOURCE;
  }
}

Error invalid(const char* function, std::string why) {
  return Error{.code = Code::kInvalidArgument,
               .what = "an argument cannot be used",
               .where = function,
               .why = std::move(why),
               .fix = "include/topknot/kernels.h says what each one is"};
}

}  // namespace topknot::kernels

extern "C" {

int32_t topknot_kernels_abi_version(void) { return TOPKNOT_KERNELS_ABI_VERSION; }

const char* topknot_last_error(void) { return topknot::kernels::last_error.c_str(); }

}  // extern "C"
