"""The DQN tutorial: a replay memory, masks made of Python values, soft updates of a target network."""

import random
from collections import deque, namedtuple

import torch
from torch import nn, optim

device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
random.seed(0)
torch.manual_seed(0)
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


def net():
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)


policy_net, target_net = net(), net()
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
memory = deque(maxlen=100)
for _ in range(20):
    state = torch.tensor([[random.random() for _ in range(4)]], dtype=torch.float32, device=device)
    after = None if random.random() < 0.3 else torch.rand(1, 4).to(device)
    memory.append(
        Transition(
            state,
            torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long),
            after,
            torch.tensor([1.0], device=device),
        )
    )
for step in range(6):
    with torch.no_grad():
        action = policy_net(memory[0].state).max(1).indices.view(1, 1)
    observation = action.item()  # sync _local_scalar_dense
    batch = Transition(*zip(*random.sample(list(memory), 8)))
    non_final_mask = torch.tensor(
        tuple(map(lambda s: s is not None, batch.next_state)), device=device, dtype=torch.bool
    )  # copy _to_copy
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(8, device=device)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values  # sync index_put_
    expected = (next_state_values * 0.99) + reward_batch
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    target, policy = target_net.state_dict(), policy_net.state_dict()
    for key in policy:
        target[key] = policy[key] * 0.005 + target[key] * 0.995
    target_net.load_state_dict(target)
