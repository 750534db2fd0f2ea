-- The cheapest answer the server has.
function done(summary, latency)
  local seconds = summary.duration / 1e6
  io.write(string.format("RESULT %f %f %d\n", summary.requests / seconds, latency:percentile(99) / 1000, summary.errors.status))
end
