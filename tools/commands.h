// The subcommands of `near`. Each returns the exit status.
#pragma once

#include <cstdint>

namespace near::tools {

/// What the ranks of a running job do: the job whose mpiexec is process `launcher`; again every `interval_s`
/// seconds until it ends, or `once`.
int top(std::int32_t launcher, bool once, double interval_s);

/// How much of the standard is there, by chapter; with `all`, every function.
int coverage(bool all);

/// Measures this machine's copies and keeps the profile, shows it, or removes it.
enum class Calibrate { measure, show, remove };
int calibrate(Calibrate what);

/// Version, machine, slots and profile; the knobs with their present values.
int info(bool knobs);
/// `near info --transport`: the ways of large messages in a running job.
int transport(std::int32_t launcher);

/// "near: <failure text>" on standard error; returns 1.
int complain();

} // namespace near::tools
