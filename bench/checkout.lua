-- A full checkout: an order, then its payment, each under a fresh key.
local counter, thread_number = 0, 0
local order

function setup(thread)
  thread:set("number", thread_number)
  thread_number = thread_number + 1
end

function init(args)
  math.randomseed(number + 1)
  token, run = args[2], args[3]
  headers = { ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json" }
end

function request()
  counter = counter + 1
  headers["Idempotency-Key"] = "checkout-" .. run .. "-" .. number .. "-" .. counter
  if order then
    local path = "/v1/orders/" .. order .. "/payments"
    order = nil
    return wrk.format("POST", path, headers, '{"payment_method":"pm_card_ok"}')
  end
  local body = '{"lines":[{"sku":"bench-' .. math.random(1, 500) .. '","quantity":1}]}'
  return wrk.format("POST", "/v1/orders", headers, body)
end

function response(status, _, body)
  if status == 201 then order = string.match(body, '^{"id":"(ord_%x+)"') end
end

function done(summary, latency)
  local seconds = summary.duration / 1e6
  local errors = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format("RESULT %f %f %d\n", summary.requests / seconds / 2, latency:percentile(99) / 1000, errors))
end
