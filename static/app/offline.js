// The offline page goes as soon as the device is back in a network.
addEventListener("online", () => location.reload());
