"""In the form of pytorch/examples' reinforcement_learning: episodes of different lengths, one step each."""

import argparse
from collections import deque
from itertools import count

import torch
from steplog import StepLog
from torch import nn, optim
from torch.nn import functional as F

parser = argparse.ArgumentParser(description="PyTorch REINFORCE example")
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--seed", type=int, default=543)
parser.add_argument("--episodes", type=int, default=150)
parser.add_argument("--log-interval", type=int, default=10)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()
torch.manual_seed(args.seed)


class CartPole:
    """A pole on a cart: a short version of gymnasium's."""

    def reset(self):
        self.state = [0.1 * (torch.rand(()).item() - 0.5) for _ in range(4)]
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        force = 1.0 if action else -1.0
        self.state = [x + 0.2 * v, v + 0.05 * force, angle + 0.2 * spin, spin + 0.05 * (angle - force)]
        return self.state, 1.0, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 128)
        self.dropout = nn.Dropout(p=0.6)
        self.affine2 = nn.Linear(128, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=1)


env, policy = CartPole(), Policy()
if args.compile:
    policy.compile(backend=args.backend)
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = 1e-8


def select_action(state):
    probs = policy(torch.tensor(state).float().unsqueeze(0))
    m = torch.distributions.Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R, policy_loss, returns = 0, [], deque()
    for r in policy.rewards[::-1]:
        R = r + args.gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns, strict=True):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss


log = StepLog()
running_reward = 10
for i_episode in range(args.episodes):
    state, ep_reward = env.reset(), 0
    for _t in count(1):
        state, reward, done = env.step(select_action(state))
        policy.rewards.append(reward)
        ep_reward += reward
        if done or _t >= 12:  # Don't infinite loop while learning
            break
    running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
    log(finish_episode())
    if i_episode % args.log_interval == 0:
        print(f"Episode {i_episode}\tLast reward: {ep_reward:.2f}\tAverage reward: {running_reward:.2f}")
