-- One order of one of 500 products: under a fresh key each time, or under one of a fixed set. Requests
-- are written down beforehand, but for the fresh key, so that the load costs as little as it can.
local counter, thread_number = 0, 0
local heads, tails, written = {}, {}, {}

function setup(thread)
  thread:set("number", thread_number)
  thread_number = thread_number + 1
end

function init(args)
  math.randomseed(number + 1)
  local path, token, run, keys = args[1], args[2], args[3], tonumber(args[4])
  local headers = {
    ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json", ["Idempotency-Key"] = "@",
  }
  for product = 1, 500 do
    local body = '{"lines":[{"sku":"bench-' .. product .. '","quantity":1}]}'
    heads[product], tails[product] = wrk.format("POST", path, headers, body):match("^(.-)@(.*)$")
  end
  for key = 1, keys do
    local product = key % 500 + 1
    written[key] = heads[product] .. "replay-" .. run .. "-" .. key .. tails[product]
  end
  fresh = "fresh-" .. run .. "-" .. number .. "-"
end

function request()
  counter = counter + 1
  if #written > 0 then return written[counter % #written + 1] end
  local product = math.random(1, 500)
  return heads[product] .. fresh .. counter .. tails[product]
end

function done(summary, latency)
  local seconds = summary.duration / 1e6
  local errors = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format("RESULT %f %f %d\n", summary.requests / seconds, latency:percentile(99) / 1000, errors))
end
