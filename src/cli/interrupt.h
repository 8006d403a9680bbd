// Ctrl-C as a flag and a readable descriptor, so that an answer can be cancelled and a wait for
// input can be ended, and no press is lost between the two.
#pragma once

#include <atomic>

namespace topknot::cli {

// Takes SIGINT for the life of the program. The first press since the last consume() sets the flag;
// the one after the next ends the program as it would without us, should nobody look at the flag.
class Interrupt {
 public:
  static void install();
  static const std::atomic<bool>& flag();
  // True if it was pressed since the last call.
  static bool consume();
  // Readable when it was pressed; -1 when the system gave no pipe.
  static int descriptor();
};

}  // namespace topknot::cli
