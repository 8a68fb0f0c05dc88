"""How do stores of logs compare? One interface (paper 5), and a store of each kind behind it."""
