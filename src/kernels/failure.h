// An Error as what C can take: a status, and a text kept for the thread.
#pragma once

#include <functional>

#include "topknot/error.h"
#include "topknot/kernels.h"

namespace topknot::kernels {

// Runs `call`; whatever it returns or throws becomes a status.
topknot_status guarded(const std::function<Status()>& call);

Error invalid(const char* function, std::string why);

}  // namespace topknot::kernels
