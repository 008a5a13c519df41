// Parts of drawings.
#pragma once

#include "base/result.h"

#include <string>

namespace near::model {

inline std::string text(double x, double y, const char* anchor, const std::string& words) {
  return base::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, words);
}
inline std::string rule(double x1, double y1, double x2, double y2, const char* style) {
  return base::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2,
                      style);
}
/// The start of a document of this size.
inline std::string document(double width, double height) {
  return base::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n"
                      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                      width, height);
}

} // namespace near::model
