-- One order of one of 500 products, under a fresh key each time, or under one of a fixed set.
local counter, thread_number = 0, 0
local number = 0

function setup(thread)
  thread:set("number", thread_number)
  thread_number = thread_number + 1
end

function init(args)
  path, token, run, keys = args[1], args[2], args[3], tonumber(args[4])
  headers = { ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json" }
end

function request()
  counter = counter + 1
  local product
  if keys > 0 then
    local key = counter % keys
    headers["Idempotency-Key"] = "replay-" .. run .. "-" .. key
    product = key % 500 + 1
  else
    headers["Idempotency-Key"] = "fresh-" .. run .. "-" .. number .. "-" .. counter
    product = math.random(1, 500)
  end
  local body = '{"lines":[{"sku":"bench-' .. product .. '","quantity":1}]}'
  return wrk.format("POST", path, headers, body)
end

local failures = 0
function response(status)
  if status ~= 201 and status ~= 200 then failures = failures + 1 end
end

function done(summary, latency)
  local seconds = summary.duration / 1e6
  local errors = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format("RESULT %f %f %d\n", summary.requests / seconds, latency:percentile(99) / 1000, errors))
end
