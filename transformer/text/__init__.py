"""What happens to text around the model: names and numbers kept, capitals, French elision."""
