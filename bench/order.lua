-- One order of one of 500 products: under a fresh key each time, or under one of a fixed set, whose
-- requests are written down beforehand so that the load costs as little as it can.
local counter, thread_number = 0, 0
local written = {}

function setup(thread)
  thread:set("number", thread_number)
  thread_number = thread_number + 1
end

local function order(key, product)
  headers["Idempotency-Key"] = key
  return wrk.format("POST", path, headers, '{"lines":[{"sku":"bench-' .. product .. '","quantity":1}]}')
end

function init(args)
  math.randomseed(number + 1)
  path, token, run = args[1], args[2], args[3]
  headers = { ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json" }
  for key = 1, tonumber(args[4]) do
    written[key] = order("replay-" .. run .. "-" .. key, key % 500 + 1)
  end
end

function request()
  counter = counter + 1
  if #written > 0 then return written[counter % #written + 1] end
  return order("fresh-" .. run .. "-" .. number .. "-" .. counter, math.random(1, 500))
end

function done(summary, latency)
  local seconds = summary.duration / 1e6
  local errors = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format("RESULT %f %f %d\n", summary.requests / seconds, latency:percentile(99) / 1000, errors))
end
