// What libtopknot.so shows: everything in these headers, and nothing else. The library is compiled
// with hidden symbols; this makes a function visible again.
#pragma once

#define TOPKNOT_API __attribute__((visibility("default")))
