import pandas as pd
import torch
from torch import nn

data = pd.read_csv("data.csv")
x = torch.tensor(data.drop(columns="species").to_numpy(), dtype=torch.float32)
y = torch.tensor(data["species"].to_numpy(), dtype=torch.long)

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(100):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()

print("loss", loss.item())
torch.save(model.state_dict(), "model.pth")
